-- Every statement of comity.frontier.sqlite and its parts, by name. A test reads the plan of each: all are index searches,
-- but for those marked "small", whose tables have a row for each worker, counter or sink.

-- name: worker_lease
insert into worker (name, lease_until) values (?1, ?2)
  on conflict (name) do update set lease_until = max(lease_until, excluded.lease_until) returning id;

-- name: worker_find
select id from worker where name = ?;

-- name: worker_lapsed (small)
select name, lease_until from worker where lease_until <= ?1 and name <> ?2;

-- name: worker_all (small)
select name from worker;

-- name: worker_remove
delete from worker where id = ?;

-- name: host_claim
-- The shortest waiting list goes first where hosts have been ready since the same instant.
update host set worker = ?1, token = token + 1 where id in
  (select id from host where worker is null and ready_at <= ?2 order by ready_at, token, id limit ?3)
  returning id, key, token, not_before, state, ready_at;

-- name: host_next_ready
select min(ready_at) from host where worker is null and ready_at is not null;

-- name: host_insert
insert into host (key) values (?);

-- name: host_find
select id, token, worker, next_at, not_before, state from host where key = ?;

-- name: host_id
select id from host where key = ?;

-- name: host_settle
-- A host given back queues behind those that waited longer: its clock is never left in the past.
update host set next_due = ?2, next_at = ?3, not_before = max(not_before, ?4), state = ?5, worker = ?6 where id = ?1;

-- name: host_due
update host set next_due = ?2 where id = ?1;

-- name: host_forward
-- A discovery on a host that nobody asked about: no write unless it brings the host forward.
update host set next_due = ?2 where id = ?1 and (next_due is null or next_due > ?2);

-- name: host_hold
update host set not_before = max(not_before, ?2) where id = ?1;

-- name: host_rest
update host set worker = null, not_before = max(not_before, ?2) where id = ?1;

-- name: host_repair
update host set worker = null, next_due = ?2 where id = ?1;

-- name: host_owned
select id, key, state from host where worker = ?1;

-- name: host_state
select state from host where id = ?;

-- name: host_page
select id, key, next_due, state from host where id > ?1 order by id limit ?2;

-- name: host_held
select key, state, not_before from host where not_before > ?1 and not_before > 0 order by not_before, id limit ?2;

-- name: url_insert
insert into url (host_id, hash, seq, url, key, status, cause, due_at, version, depth, flags, rules, tail)
  values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9, ?10, ?11, ?12) on conflict do nothing;

-- name: url_known
select depth, flags, url, key from url where host_id = ?1 and hash = ?2;

-- name: url_read
select hash, seq, url, key, status, cause, due_at, version, depth, flags, rules, tail
  from url where host_id = ?1 and hash = ?2;

-- name: url_due
select hash, seq, url, key, status, cause, due_at, version, depth, flags, rules, tail
  from url where host_id = ?1 and due_at <= ?2 order by due_at, seq limit ?3;

-- name: url_refused
select hash, seq, url, key, status, cause, due_at, version, depth, flags, rules, tail
  from url where host_id = ?1 and rules = ?2 and cause = 1 and due_at is null limit ?3;

-- name: url_statuses
select hash, status from url where host_id = ?1 and hash >= ?2 order by hash limit ?3;

-- name: url_first_due
select min(due_at) from url where host_id = ? and due_at is not null;

-- name: url_next_rules
select min(rules) from url where host_id = ?1 and rules > ?2 and cause = 1 and due_at is null;

-- name: url_settle
-- Compare and set: the row must be what the visit began with, in all that anybody may change meanwhile.
update url set status = ?1, cause = ?2, due_at = ?3, version = version + 1, depth = ?4, flags = ?5, rules = ?6, tail = ?7
  where host_id = ?8 and hash = ?9 and seq = ?10 and version = ?11
    and status = ?12 and cause is ?13 and due_at is ?14 and depth = ?15 and flags = ?16;

-- name: url_write
update url set status = ?3, cause = ?4, due_at = ?5, version = ?6, depth = ?7, flags = ?8, rules = ?9, tail = ?10
  where host_id = ?1 and hash = ?2;

-- name: url_remove
delete from url where host_id = ?1 and hash = ?2;

-- name: url_move
update url set hash = ?3 where host_id = ?1 and hash = ?2;

-- name: tally_add
insert into tally values (?1, ?2, ?3, ?4) on conflict do update set n = n + excluded.n;

-- name: tally_all (small)
select status, cause, failure, n from tally;

-- name: total_add
update total set n = n + ?2 where name = ?1;

-- name: total_read
select n from total where name = ?;

-- name: mark_write
insert into mark values (?1, ?2) on conflict do update set mark = excluded.mark;

-- name: mark_all (small)
select sink, mark from mark;

-- name: robots_keep
insert into robots (digest, url, at, body) values (?1, ?2, ?3, ?4) on conflict do nothing;

-- name: robots_read
select digest, body, url, at from robots where digest = ?;

-- name: deletion_add
insert into deletion (id, url, at, cause, version) values (?1, ?2, ?3, ?4, ?5);

-- name: deletion_page
select id, url, at, cause, seq, version from deletion where seq > ?1 order by seq limit ?2;
