create table operator_tokens (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  hash text collate "C" not null,
  scopes text collate "C" not null,
  created bigint not null,
  expires bigint,
  used bigint,
  primary key (tenant_id, _id),
  unique (tenant_id, name),
  unique (tenant_id, hash)
);
