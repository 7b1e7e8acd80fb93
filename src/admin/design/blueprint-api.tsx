import { Group, SegmentedControl, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { blueprintQuery } from '../api/queries'
import type { Blueprint } from '../api/schema'
import { getNamedTenant } from '../api/session'
import { BlueprintTabs } from '../data/blueprint-tabs'
import { entitySearchQuery } from '../data/entity-queries'
import { ApiTokenButton, useApiToken } from '../ui/api-token'
import { CodeBlock } from '../ui/code-block'
import { ProblemMessage } from '../ui/problem-message'
import { TOKEN_PLACEHOLDER, toUrl, writeCurl, writeFetch } from '../ui/request-code'
import { Screen } from '../ui/screen'
import { reachOf } from './access-evaluation'
import classes from './design.module.css'
import { type EntityExample, listExamples } from './entity-requests'
import { GeneratedCode } from './generated-code'

const route = getRouteApi('/frame/data/$blueprint/all/api')
const LANGUAGES = [
  { value: 'curl', label: 'curl' },
  { value: 'javascript', label: 'JavaScript' },
  { value: 'typescript', label: 'TypeScript' },
]

/** How programs use the entities of a blueprint: ready requests, the client and the types. */
export function BlueprintApi() {
  const { blueprint: key } = route.useParams()
  const { data: blueprint, error } = useQuery(blueprintQuery(key))
  if (error) return <ProblemMessage error={error} />
  if (!blueprint) return null
  return (
    <Screen title={blueprint.name} tabs={<BlueprintTabs blueprint={key} current="API" />}>
      <ApiGuide blueprint={blueprint} />
    </Screen>
  )
}

function ApiGuide({ blueprint }: { blueprint: Blueprint }) {
  const { language = 'curl' } = route.useSearch() as { language?: string }
  const navigate = useNavigate()
  const { data: entities } = useQuery(entitySearchQuery(blueprint.key, ''))
  const apiToken = useApiToken(`For ${blueprint.key}`)
  const examples = listExamples(blueprint, entities?.[0])
  return (
    <Stack className={classes.column} gap="md">
      <Group justify="space-between">
        <SegmentedControl
          aria-label="Language"
          data={LANGUAGES}
          value={language}
          onChange={(next) => navigate({ to: '.', search: { language: next } as never, replace: true })}
        />
        <ApiTokenButton {...apiToken} />
      </Group>
      {language === 'typescript' ? (
        <GeneratedCode blueprint={blueprint} examples={examples} token={apiToken.token ?? TOKEN_PLACEHOLDER} />
      ) : (
        examples.map((example) => (
          <Example
            key={example.title}
            example={example}
            language={language}
            token={apiToken.token}
            isOpenToGuests={isOpenToGuests(blueprint, example)}
          />
        ))
      )}
    </Stack>
  )
}

const isOpenToGuests = ({ permissions = [], permissionScope = 'user' }: Blueprint, { operation }: EntityExample) =>
  reachOf(permissions, permissionScope, operation, undefined).length > 0

type ExampleProps = { example: EntityExample; language: string; token: string | undefined; isOpenToGuests: boolean }

/** One request; where guests may send it, it needs no token. */
function Example({ example: { title, request, isStream }, language, token, isOpenToGuests: isOpen }: ExampleProps) {
  const usedToken = token ?? (isOpen ? undefined : TOKEN_PLACEHOLDER)
  const code =
    language === 'curl'
      ? writeCurl(request, usedToken, isStream ? ['-N'] : [])
      : isStream
        ? writeEventSource(toUrl(request))
        : writeFetch(request, usedToken)
  return (
    <section aria-label={title}>
      <CodeBlock label={title} code={code} />
      {isOpen && !token && (
        <Text size="xs" c="dimmed" mt={-12}>
          Guests may do this, so it needs no token.
        </Text>
      )}
    </section>
  )
}

const writeEventSource = (url: string) => {
  const tenant = getNamedTenant()
  const note = tenant ? `// In a browser at the host of "${tenant}", where the session is sent.\n` : ''
  return `${note}const changes = new EventSource(${JSON.stringify(url)})
changes.addEventListener('ready', () => reloadList())
for (const name of ['create', 'update', 'delete'])
  changes.addEventListener(name, ({ data }) => showChange(name, JSON.parse(data)))`
}
