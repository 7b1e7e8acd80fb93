create table versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  topic text collate "C" not null,
  version bigint not null,
  primary key (tenant_id, topic)
);

create table users (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  username text collate "C" not null,
  username_key text collate "C" not null,
  email text collate "C",
  email_key text collate "C",
  email_verified bigint not null,
  password text collate "C",
  roles text collate "C" not null,
  name text collate "C",
  first_name text collate "C",
  last_name text collate "C",
  full_name text collate "C",
  profile_image text collate "C",
  birth_date text collate "C",
  phone text collate "C",
  metadata text collate "C" not null,
  internal_metadata text collate "C" not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id),
  unique (tenant_id, username_key),
  unique (tenant_id, email_key)
);

create table sessions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  kind text collate "C" not null check (kind in ('cookie', 'oauth')),
  user_agent text collate "C" not null,
  address text collate "C" not null,
  created bigint not null,
  used bigint not null,
  expires bigint not null,
  primary key (tenant_id, _id),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index sessions_of_user on sessions (tenant_id, "user");

create table session_keys (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  hash text collate "C" not null,
  session text collate "C" not null,
  parent text collate "C",
  spent bigint,
  created bigint not null,
  expires bigint not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, session) references sessions (tenant_id, _id) on delete cascade
);

create index keys_of_session on session_keys (tenant_id, session);
create index keys_of_parent on session_keys (tenant_id, parent);

create table api_tokens (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  hash text collate "C" not null,
  prefix text collate "C" not null,
  nickname text collate "C" not null,
  scopes text collate "C" not null,
  workspace text collate "C",
  created bigint not null,
  used bigint,
  expires bigint,
  primary key (tenant_id, _id),
  unique (tenant_id, hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index tokens_of_user on api_tokens (tenant_id, "user");

create table signin_failures (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  subject text collate "C" not null,
  count bigint not null,
  since bigint not null,
  primary key (tenant_id, subject)
);
