-- What blueprints with a history keep of earlier states of their entities. `history_number` is the history of a blueprint,
-- and `history_fields` has the numbers that stand for its fields there: they outlast a rename, and no other field gets them.
alter table blueprints add column history_number bigint;
alter table blueprints add column history_fields text collate "C";
create table entity_versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  history bigint not null,
  identifier text collate "C" not null,
  number bigint not null,
  at bigint not null,
  author text collate "C",
  action bigint not null,
  former text collate "C",
  primary key (tenant_id, history, identifier, number)
);
