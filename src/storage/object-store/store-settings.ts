import { environment } from '../../config'

/** Where a store is and with which credentials it is asked. What is left out comes from the environment. */
export type StoreAccess = {
  endpoint?: string
  region?: string
  accessKeyId?: string
  secretAccessKey?: string
  sessionToken?: string
}

/** A bucket, and the beginning of all keys in it: empty, or with a slash at its end. */
export type StorePlace = { bucket: string; prefix: string }

/** Returns the place that an address such as `s3://bucket/prefix` names. */
export function parseStoreAddress(url: string): StorePlace {
  const { host: bucket, pathname } = new URL(url)
  const path = decodeURIComponent(pathname).replace(/^\/+|\/+$/g, '')
  return { bucket, prefix: path && `${path}/` }
}

/** Completes the access to a store by the variables `S3_…`, or their `AWS_…` counterparts. */
export function completeStoreAccess(given: StoreAccess): StoreAccess & { endpoint: string; region: string } {
  const read = (name: string) => {
    const variable = name.toUpperCase()
    return environment[`S3_${variable}`] || environment[`AWS_${variable}`] || undefined
  }
  const named = given.endpoint ?? read('endpoint')
  const region = given.region ?? read('region') ?? guessRegion(named)
  return {
    endpoint: toUrl(named ?? `https://s3.${region}.amazonaws.com`),
    region,
    accessKeyId: given.accessKeyId ?? read('access_key_id'),
    secretAccessKey: given.secretAccessKey ?? read('secret_access_key'),
    sessionToken: given.sessionToken ?? read('session_token'),
  }
}

const toUrl = (endpoint: string) =>
  (/^https?:\/\//.test(endpoint) ? endpoint : `https://${endpoint}`).replace(/\/+$/, '')

function guessRegion(endpoint = ''): string {
  if (endpoint.includes('.r2.cloudflarestorage.com')) return 'auto'
  return /s3[.-]([a-z]{2}(-[a-z]+)+-\d)\.amazonaws\.com/.exec(endpoint)?.[1] ?? 'us-east-1'
}
