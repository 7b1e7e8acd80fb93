-- Tokens of the operator that allow a part of what the token of the settings does.
create table operator_tokens (
  _id text not null primary key,
  name text not null unique,
  hash text not null unique,
  scopes text not null,
  created integer not null,
  expires integer,
  used integer
) strict;
