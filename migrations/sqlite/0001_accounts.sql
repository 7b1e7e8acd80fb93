create table versions (
  topic text not null primary key,
  version integer not null
) strict;

create table users (
  _id text not null primary key,
  username text not null,
  username_key text not null unique,
  email text,
  email_key text unique,
  email_verified integer not null,
  password text,
  roles text not null,
  name text,
  first_name text,
  last_name text,
  full_name text,
  profile_image text,
  birth_date text,
  phone text,
  metadata text not null,
  internal_metadata text not null,
  version integer not null,
  created integer not null,
  updated integer not null
) strict;

create table sessions (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  kind text not null check (kind in ('cookie', 'oauth')),
  user_agent text not null,
  address text not null,
  created integer not null,
  used integer not null,
  expires integer not null
) strict;

create index sessions_of_user on sessions (user);

create table session_keys (
  hash text not null primary key,
  session text not null references sessions (_id) on delete cascade,
  parent text,
  spent integer,
  created integer not null,
  expires integer not null
) strict;

create index keys_of_session on session_keys (session);
create index keys_of_parent on session_keys (parent);

create table api_tokens (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  hash text not null unique,
  prefix text not null,
  nickname text not null,
  scopes text not null,
  workspace text,
  created integer not null,
  used integer,
  expires integer
) strict;

create index tokens_of_user on api_tokens (user);

create table signin_failures (
  subject text not null primary key,
  count integer not null,
  since integer not null
) strict;
