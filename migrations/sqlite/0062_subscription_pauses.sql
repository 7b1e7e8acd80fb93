-- Pauses and conflicts with other subscriptions, who asked for the end, and from when on periods are counted.
alter table subscriptions add column pause text;
alter table subscriptions add column conflict text;
alter table subscriptions add column ended_by text;
alter table subscriptions add column period_anchor integer;
