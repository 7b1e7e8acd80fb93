create table mails (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  recipient text collate "C" not null,
  recipient_key text collate "C" not null,
  template text collate "C" not null,
  "user" text collate "C",
  data text collate "C" not null,
  state text collate "C" not null,
  subject text collate "C",
  text text collate "C",
  html text collate "C",
  error text collate "C",
  created bigint not null,
  sent bigint,
  primary key (tenant_id, _id)
);

create index mails_by_time on mails (tenant_id, created, _id);

create index mails_to on mails (tenant_id, recipient_key, sent);

create table one_time_tokens (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  hash text collate "C" not null,
  purpose text collate "C" not null,
  "user" text collate "C" not null,
  data text collate "C" not null,
  expires bigint not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index one_time_tokens_of_user on one_time_tokens (tenant_id, "user");

create index one_time_tokens_by_end on one_time_tokens (tenant_id, expires);

create table devices (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  "user" text collate "C" not null,
  device text collate "C" not null,
  seen bigint not null,
  primary key (tenant_id, "user", device),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index devices_by_time on devices (tenant_id, seen);

create table totp (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  "user" text collate "C" not null,
  confirmed bigint not null,
  step bigint not null,
  primary key (tenant_id, "user"),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create table recovery_codes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  hash text collate "C" not null,
  "user" text collate "C" not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index recovery_codes_of_user on recovery_codes (tenant_id, "user");

create table identities (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  provider text collate "C" not null,
  subject text collate "C" not null,
  "user" text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, provider, subject),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index identities_of_user on identities (tenant_id, "user");
