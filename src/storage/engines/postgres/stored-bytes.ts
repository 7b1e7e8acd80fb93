import type { TenantCopyConnection } from '../../port'

const ROW_BYTES = 28 // the header of a row, and its pointer

/** Returns how many bytes the rows of a tenant take, without indexes. It reads all of them. */
export const sumRowBytes = (copy: TenantCopyConnection): Promise<number> =>
  copy.readSnapshot(async ({ query }) => {
    let bytes = 0
    for (const { name, columns } of copy.tables) {
      const sizes = columns.map((column) => `coalesce(pg_column_size("${column.name}"), 0)`)
      const [row] = await query(`select coalesce(sum(${sizes.join(' + ')} + ${ROW_BYTES}), 0)::bigint from "${name}"`)
      bytes += Number(row![0])
    }
    return bytes
  })
