create table configurations (
  _id text not null primary key,
  key text not null unique,
  public integer not null,
  kind text not null,
  description text not null,
  metadata text not null,
  created integer not null,
  updated integer not null
) strict;

create table workspaces (
  _id text not null primary key,
  name text not null,
  logo text,
  labels text not null,
  created integer not null,
  updated integer not null
) strict;

create index workspaces_by_time on workspaces (created, _id);

create table members (
  workspace text not null references workspaces (_id) on delete cascade,
  user text not null references users (_id) on delete cascade,
  roles text not null,
  created integer not null,
  primary key (workspace, user)
) strict;

create index members_by_user on members (user);

create table invites (
  _id text not null primary key,
  workspace text not null references workspaces (_id) on delete cascade,
  email_key text not null,
  email text not null,
  name text,
  roles text not null,
  created integer not null,
  unique (workspace, email_key)
) strict;

create index invites_by_email on invites (email_key);

create table sealed (
  purpose text not null,
  owner text not null,
  name text not null,
  key integer not null,
  text text not null,
  updated integer not null,
  primary key (purpose, owner, name)
) strict;

create index sealed_by_key on sealed (key);

alter table sessions add column workspace text;
alter table api_tokens add column active_workspace text;

create index tokens_of_workspace on api_tokens (workspace);
