-- A content is stored once, however many files have it. `claimed` is when an upload last needed it, and one that is
-- being removed is not used again before it is gone.
create table file_contents (
  sha256 text not null primary key,
  size integer not null,
  claimed integer not null,
  removing integer not null
) strict, without rowid;
create table files (
  _id text not null primary key,
  name text not null,
  type text not null,
  size integer not null,
  sha256 text not null references file_contents (sha256),
  owner text not null,
  workspace text,
  created integer not null
) strict, without rowid;
create index files_by_time on files (created, _id);
create index files_by_owner on files (owner, created, _id);
create index files_by_content on files (sha256);
