import { defineArea } from '../jobs/area'
import { templateSettings } from './mail/template-settings'
import { appSettings } from './settings/app-settings'
import { settingsShapes, toShapes } from './settings/tenant-settings'

export const platform = defineArea({
  name: 'platform',
  provides: [settingsShapes.provide(toShapes(appSettings, templateSettings))],
})
