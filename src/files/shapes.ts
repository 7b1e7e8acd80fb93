import { type Static, t } from 'elysia'
import { id, line, time } from '../core/shapes'
import { growingListQuery } from '../storage/pagination'
import { FITS } from './thumbnails/order'

const maybe = t.Optional

export const StoredFile = t.Object({
  _id: id,
  name: t.String(),
  type: t.String({ description: 'the media type, which the server detects in the content' }),
  size: t.Number({ description: 'bytes' }),
  width: maybe(t.Number({ description: 'pixels of a picture as it is shown, by its header' })),
  height: maybe(t.Number()),
  sha256: t.String({ description: 'the SHA-256 of the content, in hex' }),
  visibility: t.Literal('private', {
    description: 'its owner and admins can read it, whoever has a link, and who may read it in an entity',
  }),
  owner: t.String({ description: 'the id of the user who uploaded it' }),
  workspace: t.Nullable(t.String({ description: 'the active workspace of the owner at the upload' })),
  created: time,
  keep: maybe(t.Boolean({ description: 'whether it stays when no entity names it; absent where it does not' })),
  url: t.String({ description: 'the path of its content' }),
})
export type StoredFile = Static<typeof StoredFile>

export const FileList = t.Object({
  ...growingListQuery,
  name: maybe(t.String({ description: 'only those with this name' })),
  type: maybe(t.String({ description: 'only those of this media type, such as `image/png` or `image/*`' })),
  owner: maybe(t.String({ description: 'only those of this user' })),
})

export const FileChange = t.Object({
  keep: t.Boolean({ description: 'whether it stays when no entity names it; otherwise it is removed after a day' }),
})
export type FileChange = Static<typeof FileChange>

export const FileDeletion = t.Object({
  force: maybe(t.String({ description: 'true: deletes the file even if entities refer to it' })),
})

export const FileUpload = t.Object({
  name: maybe(line(1_000)),
  keep: maybe(t.String({ description: 'true: the file stays even if no entity refers to it' })),
})

export const ContentParams = t.Object({ id: t.String(), name: t.String() })
export const ContentQuery = t.Object({
  token: maybe(t.String({ description: 'a token of `POST /api/files/:id/token`' })),
  download: maybe(t.String({ description: 'saves the file instead of showing it' })),
  thumb: maybe(t.String({ description: 'a thumbnail of a picture of this size, such as `400x400`' })),
  fit: maybe(
    t.Union(
      FITS.map((fit) => t.Literal(fit)),
      {
        default: 'cover',
        description:
          'how a thumbnail fits its size: cut to fill it, whole in a frame of that size, or whole and no larger than it is',
      },
    ),
  ),
})

export const FileLink = t.Object({
  token: t.String(),
  url: t.String({ description: 'the path of the content with the token' }),
  expires: time,
})
