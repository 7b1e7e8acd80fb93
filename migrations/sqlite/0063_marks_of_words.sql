-- Words had no marks at all, so that kana that differ in voicing, and vowels of Hindi or Thai, were the same.
-- Each blueprint's words are collected again at its next search.
delete from search_progress;
insert into search_words (search_words) values ('delete-all');
