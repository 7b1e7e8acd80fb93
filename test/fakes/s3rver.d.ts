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
