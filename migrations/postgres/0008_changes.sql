create table change_logs (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  since bigint not null,
  until bigint not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

create table entity_changes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  number bigint not null,
  blueprint text collate "C" not null,
  made bigint not null,
  shown_before text collate "C",
  keys_before text collate "C",
  shown text collate "C",
  keys text collate "C",
  primary key (tenant_id, number),
  foreign key (tenant_id, blueprint) references change_logs (tenant_id, blueprint) on delete cascade
);

create index changes_of_blueprint on entity_changes (tenant_id, blueprint, number);
