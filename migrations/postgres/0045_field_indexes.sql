-- The indexes of fields. Most are made when a query first needs them; those of earlier versions stay.
-- `indexing` counts the changes of a blueprint's indexes, so that every writer notices them.
alter table blueprints add column indexing bigint not null default 0;
create table field_indexes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  number bigint not null,
  state text collate "C" not null,
  reason text collate "C" not null,
  since bigint not null,
  used bigint not null,
  done bigint not null,
  upto bigint not null,
  primary key (tenant_id, blueprint, number),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);
insert into field_indexes (tenant_id, blueprint, number, state, reason, since, used, done, upto)
select tenant_id, blueprint, number, 'ready', 'earlier version',
  (extract(epoch from now()) * 1000)::bigint, (extract(epoch from now()) * 1000)::bigint, 0, 0
from fields;
