create table search_words (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  entity bigint not null,
  words tsvector not null,
  primary key (tenant_id, entity)
);

create table search_progress (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  done bigint not null,
  upto bigint not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);
