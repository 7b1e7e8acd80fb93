import type { Db } from '../../port'

const SELECT_STORED_BYTES = `select (pages.page_count - free.freelist_count) * size.page_size
  from pragma_page_count() pages, pragma_freelist_count() free, pragma_page_size() size`

/** Returns how many bytes of a file have data in them: its pages without the free ones, which new data will take. */
export async function readStoredBytes({ query }: Pick<Db, 'query'>): Promise<number> {
  const [row] = await query(SELECT_STORED_BYTES)
  return Number(row![0])
}
