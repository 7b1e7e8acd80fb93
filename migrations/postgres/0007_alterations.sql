create table alterations (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  form bigint not null,
  state text collate "C" not null,
  change text collate "C" not null,
  created bigint not null,
  entity bigint not null,
  upto bigint not null,
  done bigint not null,
  total bigint not null,
  problem text collate "C",
  since bigint not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

alter table blueprints add column form bigint not null default 0;
alter table entities add column altered text collate "C";
alter table entities add column form bigint;
create index entities_to_alter on entities (tenant_id, blueprint, seq) where form = -1;
