declare module '*.sql' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: it is how text files are imported
  export default text
}

declare module 'swagger-ui-dist/*' {
  const path: string
  // biome-ignore lint/style/noDefaultExport: it is how files are named by import
  export default path
}

declare module 'moment-timezone/data/packed/latest.json' {
  const path: string
  // biome-ignore lint/style/noDefaultExport: it is how files are named by import
  export default path
}
