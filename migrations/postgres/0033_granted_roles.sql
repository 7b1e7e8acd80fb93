-- Which roles of an invite an admin of the tenant gave. Nobody knows who gave those that were there before.
alter table invites add column granted_roles text collate "C" not null default '[]';
