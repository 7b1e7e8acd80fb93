import { customType } from 'drizzle-orm/sqlite-core'
import { toIsoString } from '../core/clock'

/** An ISO string in code and on the wire, epoch milliseconds in the database. */
export const timestamp = customType<{ data: string; driverData: number }>({
  dataType: () => 'integer',
  toDriver: (text) => Date.parse(text),
  fromDriver: (ms) => toIsoString(ms),
})
