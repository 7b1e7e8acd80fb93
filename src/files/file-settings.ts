import { t } from 'elysia'
import { ThumbnailSize } from '../blueprints/file-fields'
import { defineSettings } from '../platform/settings/tenant-settings'

/** What a tenant sets for its files. */
export const fileSettings = defineSettings(
  'files-configuration',
  t.Object({
    thumbs: t.Array(ThumbnailSize, {
      ...{ maxItems: 20, uniqueItems: true, default: ['100x100', '400x400', '1200x1200'] },
      description: 'allowed thumbnail sizes, as width x height in pixels',
    }),
  }),
)
