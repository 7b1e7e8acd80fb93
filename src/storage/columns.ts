import { customType } from 'drizzle-orm/sqlite-core'
import { toIsoString } from '../core/clock'

/** A time: an ISO 8601 string in code and responses, epoch milliseconds in the database. */
export const timestamp = customType<{ data: string; driverData: number }>({
  dataType: () => 'integer',
  toDriver: (text) => Date.parse(text),
  fromDriver: (ms) => toIsoString(ms),
})
