create table passkeys (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  credential text collate "C" not null,
  public_key text collate "C" not null,
  counter bigint not null,
  host text collate "C" not null,
  name text collate "C" not null,
  transports text collate "C" not null,
  backed_up bigint not null,
  created bigint not null,
  used bigint,
  primary key (tenant_id, _id),
  unique (tenant_id, credential),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index passkeys_of_user on passkeys (tenant_id, "user");

create table passkey_challenges (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  hash text collate "C" not null,
  purpose text collate "C" not null,
  "user" text collate "C",
  origin text collate "C" not null,
  expires bigint not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index passkey_challenges_of_user on passkey_challenges (tenant_id, "user");

create index passkey_challenges_by_end on passkey_challenges (tenant_id, expires);

alter table identities add column email text collate "C";

alter table identities add column used bigint;
