import type { Ctx } from '../../accounts/context'
import * as connections from '../../connections/connections'
import type { KindName } from '../../connections/kinds/index'
import { mayKeepSecret } from '../../connections/secret-address'
import { readSecrets } from '../../connections/secrets'
import { NewConnection } from '../../connections/shapes'
import { type Definition, defineKind, ifUnreadable, mapTexts, replaceKeys, toEmptyTexts } from './definition-kind'

/** A connection to another server. Its secrets are in `authentication`, as in the API. */
export const connection = defineKind({
  folder: 'connections',
  nameKey: 'name',
  sharesNames: true,
  shape: NewConnection,
  defaults: { labels: [], metadata: {}, authentication: {} },
  mapSecrets: ({ authentication, ...definition }, map) => ({
    ...definition,
    ...(authentication !== undefined && { authentication: mapTexts(authentication, map) }),
  }),
  mayKeepSecret: ([secret = ''], before, after) =>
    mayKeepSecret(before.kind as KindName, secret, toMetadata(before), toMetadata(after)),
  list: connections.list,
  get: connections.get,
  async toStored({ _id, name, kind, labels, metadata, secrets }, ctx) {
    const authentication = await readAuthentication(ctx, _id, secrets)
    return { id: _id, name, definition: { kind, labels, metadata, authentication } }
  },
  validate: (_ctx, input, { before }) => connections.validate(input, before?.stored.metadata as Definition | undefined),
  create: connections.create,
  change(ctx, id, { name, kind, labels = [], metadata, authentication }, { before, ifMatch }) {
    const input = {
      ...{ name, kind, labels },
      metadata: replaceKeys(before.metadata as Definition, metadata),
      authentication: replaceKeys(before.authentication as Definition, authentication),
    }
    return connections.change(ctx, id, input, { ifMatch })
  },
  remove: (ctx, id, { ifMatch }) => connections.remove(ctx, id, { ifMatch }),
})

const toMetadata = ({ metadata = {} }: Definition) => metadata as Definition

/** Returns the secrets by name; those that no key decrypts any more are empty. */
const readAuthentication = (ctx: Ctx, id: string, names: string[]): Promise<Definition> =>
  readSecrets(ctx, id, names).catch(ifUnreadable(toEmptyTexts(names)))
