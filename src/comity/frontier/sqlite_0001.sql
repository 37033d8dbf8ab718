-- From an empty file to version 1. A migration is never edited once it is released; sqlite.sql is where the schema is
-- explained.

create table host (
  id         integer primary key,
  key        text not null unique,
  next_due   real,
  next_at    real not null default 0,
  not_before real not null default 0,
  token      integer not null default 0,
  worker     integer,
  ready_at   real generated always as (max(next_due, next_at, not_before)) virtual,
  state      blob
) strict;

create index host_ready on host (ready_at, token) where worker is null and ready_at is not null;
create index host_owned on host (worker) where worker is not null;
create index host_held on host (not_before) where not_before > 0;

create table url (
  host_id integer not null,
  hash    integer not null,
  seq     integer not null,
  url     text not null,
  key     text,
  status  integer not null,
  cause   integer,
  due_at  real,
  version integer not null,
  depth   integer not null,
  flags   integer not null,
  rules   text,
  tail    blob not null,
  primary key (host_id, hash)
) without rowid, strict;

create index url_due on url (host_id, due_at, seq) where due_at is not null;
create index url_refused on url (host_id, rules) where cause = 1 and rules is not null and due_at is null;

create table worker (
  id          integer primary key autoincrement,
  name        text not null unique,
  lease_until real not null
) strict;

create table tally (
  status  integer not null,
  cause   integer not null,
  failure text not null,
  n       integer not null,
  primary key (status, cause, failure)
) without rowid, strict;

create table total (
  name text primary key,
  n    integer not null
) without rowid, strict;

create table mark (
  sink text primary key,
  mark blob not null
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
