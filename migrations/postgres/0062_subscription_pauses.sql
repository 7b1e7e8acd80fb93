-- Pauses and conflicts with other subscriptions, who asked for the end, and from when on periods are counted.
alter table subscriptions add column pause text collate "C";
alter table subscriptions add column conflict text collate "C";
alter table subscriptions add column ended_by text collate "C";
alter table subscriptions add column period_anchor bigint;
