import { Button, Text } from '@mantine/core'
import { IconDeviceFloppy } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate, useSearch } from '@tanstack/react-router'
import { queryClient } from '../../api/queries'
import { formatTypeScript } from '../../ui/code-format'
import { showNotice } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { Screen } from '../../ui/screen'
import { Workbench } from '../workbench'
import { useCodeDraft } from './code-draft'
import { LambdaCode } from './lambda-code'
import { LambdaLogs } from './lambda-logs'
import { changeLambda, type LoadedLambda, lambdaQuery } from './lambda-queries'
import { LambdaRunner } from './lambda-runner'
import { LambdaSettings } from './lambda-settings'
import { LambdaVersions } from './lambda-versions'
import { OutdatedNotice } from './outdated-notice'
import { saveByKey } from './save-shortcut'
import { VersionDiff } from './version-diff'

const route = getRouteApi('/frame/automation/lambdas/$id')

/** One lambda: its code, and what runs it. */
export function LambdaScreen() {
  const { id } = route.useParams()
  const { data, error } = useQuery(lambdaQuery(id))
  if (error) return <ProblemMessage error={error} />
  return data ? <LambdaEditor key={id} loaded={data} /> : <Screen title="Lambda">{null}</Screen>
}

function LambdaEditor({ loaded }: { loaded: LoadedLambda }) {
  const { lambda } = loaded
  const search = useSearch({ strict: false }) as { version?: string }
  const navigate = useNavigate()
  const draft = useCodeDraft(lambda._id, lambda)
  const save = useMutation({
    mutationFn: async (code: string) => changeLambda(loaded, { code: await formatTypeScript(code) }),
    onSuccess: ({ lambda: saved }, code) => {
      draft.acceptSaved(saved, code)
      showNotice('Saved.')
    },
    // Perhaps somebody else saved it: the notice about that needs their version.
    onError: () => queryClient.invalidateQueries({ queryKey: lambdaQuery(lambda._id).queryKey }),
  })
  const change = (code: string) => {
    if (save.isError) save.reset()
    draft.change(code)
  }
  const showVersion = (version?: number) =>
    navigate({ to: '.', search: { ...search, version: version?.toString() } as never, replace: true })
  const maySave = draft.isDirty && !draft.isOutdated && !save.isPending
  const saveChanges = async () => {
    if (maySave) await save.mutateAsync(draft.code)
  }
  return (
    <Screen
      title={lambda.name}
      request={{ method: 'POST', path: `/api/lambdas/${lambda._id}/execute`, body: { body: { name: 'Ada' } } }}
      actions={
        <>
          <Text size="xs" c="dimmed" role="status">
            {draft.isDirty ? 'Not saved' : `Version ${lambda.version}`}
          </Text>
          <Button
            leftSection={<IconDeviceFloppy size={14} />}
            onClick={() => save.mutate(draft.code)}
            loading={save.isPending}
            disabled={!maySave}
          >
            Save
          </Button>
        </>
      }
    >
      <Workbench
        tabs={[
          {
            key: 'run',
            label: 'Run',
            render: () => <LambdaRunner lambda={lambda} isDirty={draft.isDirty} saveChanges={saveChanges} />,
          },
          { key: 'logs', label: 'Logs', render: () => <LambdaLogs id={lambda._id} /> },
          {
            key: 'versions',
            label: 'Versions',
            render: () => <LambdaVersions loaded={loaded} shown={Number(search.version)} onShow={showVersion} />,
          },
          { key: 'settings', label: 'Settings', render: () => <LambdaSettings loaded={loaded} /> },
        ]}
      >
        {draft.isOutdated && (
          <OutdatedNotice
            version={lambda.version}
            onCompare={() => showVersion(lambda.version)}
            onKeep={draft.keepMine}
            onDiscard={draft.discard}
          />
        )}
        {search.version ? (
          <VersionDiff
            loaded={loaded}
            version={Number(search.version)}
            code={draft.code}
            onClose={() => showVersion()}
            onRestored={draft.replace}
          />
        ) : (
          <div onKeyDownCapture={saveByKey(() => maySave && save.mutate(draft.code))}>
            <LambdaCode code={draft.code} error={save.error} onChange={change} />
          </div>
        )}
      </Workbench>
    </Screen>
  )
}
