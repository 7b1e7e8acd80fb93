import { defineArea } from '../jobs/area'
import { templateSettings } from './mail/template-settings'
import { appSettings } from './settings/app-settings'
import { settingsShapes, toShapes } from './settings/tenant-settings'

/** Settings of tenants, their vaults and the mail transport. */
export const platform = defineArea({
  name: 'platform',
  provides: [settingsShapes.provide(toShapes(appSettings, templateSettings))],
})
