declare module '*.module.css' {
  const classes: Record<string, string>
  // biome-ignore lint/style/noDefaultExport: it is how classes are imported
  export default classes
}
declare module '*.css'
