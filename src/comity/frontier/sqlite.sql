-- The whole schema, version 1. A new file is made from this page; an older one is brought here by the migrations
-- beside it (sqlite_0001.sql, …), and a test holds that both give the same. Why these tables and no others:
-- measured, one visit costs the pages it touches, so the hot columns stand alone, everything else is one msgpack tail,
-- and every index is partial. Booleans are bits of `flags` (1 sitemap, 2 feed, 4 visited).

create table host (
  id         integer primary key,
  key        text not null unique,
  next_due   real,                                  -- the least due_at of its urls, exactly; null: nothing is scheduled
  next_at    real not null default 0,               -- the politeness clock
  not_before real not null default 0,               -- the longest hold; only grows
  token      integer not null default 0,            -- how often the host was claimed
  worker     integer,                               -- who holds it; null: nobody
  ready_at   real generated always as (max(next_due, next_at, not_before)) virtual,  -- null when next_due is
  state      blob                                   -- msgpack of comity.model.HostState
) strict;

create index host_ready on host (ready_at, token) where worker is null and ready_at is not null;
create index host_owned on host (worker) where worker is not null;
create index host_held on host (not_before) where not_before > 0;

create table url (
  host_id integer not null,
  hash    integer not null,                         -- 64 bits of the key, or the next free place after them
  seq     integer not null,                         -- order of discovery, over all hosts
  url     text not null,
  key     text,                                     -- null: the same as url
  status  integer not null,
  cause   integer,
  due_at  real,
  version integer not null,
  depth   integer not null,
  flags   integer not null,
  rules   text,                                     -- digest of the rules that refused it
  tail    blob not null,                            -- msgpack array: see rows.py
  primary key (host_id, hash)
) without rowid, strict;

create index url_due on url (host_id, due_at, seq) where due_at is not null;
create index url_refused on url (host_id, rules) where cause = 1 and rules is not null and due_at is null;

create table worker (
  id          integer primary key autoincrement,    -- never used twice
  name        text not null unique,
  lease_until real not null
) strict;

create table tally (
  status  integer not null,
  cause   integer not null,                         -- 0: none
  failure text not null,                            -- '': none
  n       integer not null,
  primary key (status, cause, failure)
) without rowid, strict;

create table total (
  name text primary key,                            -- 'hosts', 'seq' (the last one given), 'visits'
  n    integer not null
) without rowid, strict;

create table mark (
  sink text primary key,
  mark blob not null                                -- msgpack map
) without rowid, strict;

create table robots (
  digest text primary key,
  url    text not null,
  at     real not null,
  body   blob not null
) strict;

create table deletion (
  seq     integer primary key autoincrement,
  id      text not null,
  url     text not null,
  at      real not null,
  cause   integer,
  version integer not null
) strict;

insert into total values ('hosts', 0), ('seq', 0), ('visits', 0);
