-- The trace (W3C traceparent) of the request that caused an event or a job.
alter table events add column trace text;
alter table jobs add column trace text;
