-- The pixels of pictures, and the thumbnails that are stored beside a content: JSON of their names and bytes.
alter table files add column width integer;
alter table files add column height integer;
alter table file_contents add column thumbnails text;
alter table file_contents add column thumbnail_bytes integer not null default 0;
