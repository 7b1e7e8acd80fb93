import type { Migrations } from '../../port'
import type { OpenFile } from './drivers'

const canAlterByDriver = new WeakMap<OpenFile, boolean>()
const rewrittenBy = new WeakMap<Migrations, Migrations>()

/** Returns migrations that the SQLite library can run. */
export function toRunnable(openFile: OpenFile, migrations: Migrations): Migrations {
  const { withoutAlterColumn, sqlite } = migrations
  if (!withoutAlterColumn || canAlterColumns(openFile)) return migrations
  const rewritten = rewrittenBy.get(migrations) ?? {
    ...migrations,
    sqlite: sqlite.map((sql) => withoutAlterColumn.get(sql) ?? sql),
  }
  rewrittenBy.set(migrations, rewritten)
  return rewritten
}

function canAlterColumns(openFile: OpenFile): boolean {
  const known = canAlterByDriver.get(openFile)
  if (known !== undefined) return known
  const connection = openFile(':memory:')
  let can = true
  try {
    connection.exec('create table a (b text not null); alter table a alter column b drop not null')
  } catch {
    can = false
  }
  connection.close()
  canAlterByDriver.set(openFile, can)
  return can
}
