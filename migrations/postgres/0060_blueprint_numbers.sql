-- The rows and indexes of entities have the number of their blueprint in the place of its key, which takes less room.
-- There is no foreign key to it: every write of entities checks the version of their blueprint.
alter table blueprints add column number bigint not null default 0;
update blueprints b set number = n.number
from (
  select tenant_id, key, row_number() over (partition by tenant_id order by created, key) as number from blueprints
) n
where n.tenant_id = b.tenant_id and n.key = b.key;
insert into versions (tenant_id, topic, version)
select tenant_id, 'blueprint numbers', max(number) from blueprints group by tenant_id;
alter table entities drop constraint entities_tenant_id_blueprint_fkey;
create function number_of_blueprint(uuid, text) returns bigint language sql stable
  as 'select number from blueprints where tenant_id = $1 and key = $2';
alter table entities alter column blueprint type bigint using number_of_blueprint(tenant_id, blueprint);
drop function number_of_blueprint;
