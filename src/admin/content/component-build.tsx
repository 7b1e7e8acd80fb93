import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Component } from '../api/schema'
import { CodeBlock } from '../ui/code-block'
import { ProblemMessage } from '../ui/problem-message'
import classes from './content.module.css'

/** Returns how a page uses a component. It needs an import map, because imports stay as they are written. */
function writeExample(exported: string, js: string, css: string): string {
  return [
    ...(css ? [`<link rel="stylesheet" href="${css}">`] : []),
    '<script type="importmap">{"imports": {"react": "https://esm.sh/react@19"}}</script>',
    '<script type="module">',
    `  import { ${exported} } from '${js}'`,
    '</script>',
  ].join('\n')
}

/** What the server made of a component: the addresses of its files, how a page uses them, and their content. */
export function ComponentBuild({ component }: { component: Component }) {
  const { identifier, componentName, compiledContent } = component
  const files = useQuery({
    queryKey: ['components', 'static', identifier, component.updated],
    queryFn: async () => {
      const all = await fetchData(api.GET('/api/static', { params: { query: { limit: 1_000 } } }))
      return all.find((file) => file.identifier === identifier) ?? null
    },
  })
  const exported = /export (?:const|function|class) (\w+)/.exec(component.content)?.[1] ?? componentName
  const { origin } = location
  return (
    <section className={classes.preview} aria-label="Compiled files">
      {files.error && <ProblemMessage error={files.error} />}
      {files.data && (
        <CodeBlock
          label="In a page"
          code={writeExample(exported, origin + files.data.js, files.data.css && origin + files.data.css)}
        />
      )}
      <CodeBlock label="JavaScript" code={compiledContent.js} />
      {compiledContent.css && <CodeBlock label="Style sheet" code={compiledContent.css} />}
    </section>
  )
}
