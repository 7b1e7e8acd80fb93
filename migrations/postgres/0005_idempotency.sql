create table idempotency_keys (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  attempt text collate "C" not null,
  fingerprint text collate "C",
  answer text collate "C",
  busy bigint not null,
  expires bigint not null,
  primary key (tenant_id, name)
);

create index idempotency_keys_by_end on idempotency_keys (tenant_id, expires);

create table imports (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  blueprint text collate "C" not null,
  busy bigint not null,
  primary key (tenant_id, _id)
);

create index imports_of_blueprint on imports (tenant_id, blueprint);

create table import_undo (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  import text collate "C" not null,
  entity bigint not null,
  before text collate "C",
  primary key (tenant_id, import, entity)
);
