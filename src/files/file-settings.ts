import { t } from 'elysia'
import { textMatching } from '../core/shapes'
import { defineSettings } from '../platform/settings/tenant-settings'

const SIDE = '([1-9]\\d{0,2}|1\\d{3}|2000)'

/** The shape of a size of thumbnails. */
export const ThumbnailSize = textMatching(
  `^${SIDE}x${SIDE}$`,
  'Write a size as width x height, such as 400x300; each side has 1 to 2000 pixels.',
)

/** What a tenant sets for its files. */
export const fileSettings = defineSettings(
  'files-configuration',
  t.Object({
    thumbs: t.Array(ThumbnailSize, {
      ...{ maxItems: 20, uniqueItems: true, default: ['100x100', '400x400', '1200x1200'] },
      description: 'sizes that thumbnails of pictures may have, as width x height in pixels',
    }),
  }),
)
