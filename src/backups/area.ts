import { defineArea } from '../jobs/area'
import { startBackupSchedule } from './schedule'

/** Backups of tenants, and what is made of them: restored tenants and copies. */
export const backups = defineArea({ name: 'backups', start: startBackupSchedule })
