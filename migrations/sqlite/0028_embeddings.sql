-- Which work of a model a row of usage is about: a completion, or an embedding.
alter table ai_usage add column kind text not null default 'completion';
