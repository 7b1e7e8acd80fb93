-- Entities have the code of their blueprint in the place of its key, which takes less room. The code of an existing
-- blueprint is its key, so that no row is written; that of a new one is a number. There is no foreign key to it: every
-- write of entities checks the version of their blueprint.
alter table blueprints add column code text collate "C" not null default '';
update blueprints set code = key;
alter table entities drop constraint entities_tenant_id_blueprint_fkey;
