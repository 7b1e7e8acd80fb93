import crypto from 'node:crypto'
import { rmSync, statSync } from 'node:fs'
import S3rver from 's3rver'
import FilesystemStore from 's3rver/lib/stores/filesystem'
import { createTempFolder } from '../temp-folder'
import { waitUntil } from '../wait-until'

// Lists of several pages have tokens that the server encrypts by DES, which Bun does not have.
for (const name of ['createCipheriv', 'createDecipheriv'] as const) {
  const create = crypto[name] as (cipher: string, key: Uint8Array, iv: Uint8Array, ...more: unknown[]) => unknown
  const withDes: typeof create = (cipher, key, iv, ...more) =>
    cipher === 'des'
      ? create('aes-128-cbc', Buffer.concat([key, key]), Buffer.concat([iv, iv]))
      : create(cipher, key, iv, ...more)
  Object.assign(crypto, { [name]: withDes })
}

// It answers once it has read a content, which may be before the file of the content exists.
const { putObject } = FilesystemStore.prototype
FilesystemStore.prototype.putObject = async function (object) {
  const path = this.getResourcePath(object.bucket, object.key, 'object')
  rmSync(path, { force: true })
  const stored = await putObject.call(this, object)
  await waitUntil(() => statSync(path, { throwIfNoEntry: false })?.size === stored.size)
  return stored
}

/** Starts a store that speaks the protocol of S3, with an empty bucket. `env` has the variables of its clients. */
export async function startS3Server(bucket: string) {
  const directory = createTempFolder('s3')
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: bucket }],
  })
  const { port } = await server.run()
  const env = {
    S3_ENDPOINT: `http://127.0.0.1:${port}`,
    S3_ACCESS_KEY_ID: 'S3RVER',
    S3_SECRET_ACCESS_KEY: 'S3RVER',
    S3_REGION: 'us-east-1',
  }
  return { env, directory, [Symbol.asyncDispose]: () => server.close() }
}
