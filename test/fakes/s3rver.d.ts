declare module 's3rver' {
  /** The part of the store that tests use. */
  // biome-ignore lint/style/noDefaultExport: the package exports its class so
  export default class S3rver {
    constructor(options: {
      address: string
      port: number
      silent: boolean
      directory: string
      configureBuckets: { name: string }[]
    })
    run(): Promise<{ port: number }>
    close(): Promise<void>
  }
}

declare module 's3rver/lib/stores/filesystem' {
  type StoredObject = { bucket: string; key: string }
  // biome-ignore lint/style/noDefaultExport: as above
  export default class FilesystemStore {
    getResourcePath(bucket: string, key: string, resource: string): string
    putObject(object: StoredObject): Promise<{ size: number; md5: string }>
  }
}
