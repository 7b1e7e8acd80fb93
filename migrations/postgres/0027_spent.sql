create table ai_spent (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  tokens bigint not null,
  cost bigint not null,
  primary key (tenant_id, _id)
);
