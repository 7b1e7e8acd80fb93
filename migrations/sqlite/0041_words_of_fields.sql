-- A word had the number of its field right before it, so the number 1 and the word 2a were like the number 12 and the word a.
-- Each blueprint's words are collected again at its next search.
delete from search_progress;
insert into search_words (search_words) values ('delete-all');
