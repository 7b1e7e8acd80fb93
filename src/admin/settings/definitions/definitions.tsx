import { Button, Checkbox, Group, Skeleton } from '@mantine/core'
import { IconDownload, IconFileCode, IconKey } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { downloadFile } from '../../transfer/file-download'
import type { ChosenFile } from '../../ui/chosen-files'
import { FolderDrop } from '../../ui/folder-drop'
import { showProblem } from '../../ui/notices'
import { PanelSection } from '../../ui/panel-section'
import { ProblemMessage } from '../../ui/problem-message'
import { Screen } from '../../ui/screen'
import { ChangeList } from './change-list'
import { type DefinitionChange, type DefinitionFolder, packFolder, readFolder } from './definition-folder'
import { fetchDefinitions, fetchPlan, mergeVersions, readFailure } from './definition-push'
import classes from './definitions.module.css'
import { PushForm } from './push-form'
import { Refusal } from './refusal'

const download = async () =>
  downloadFile('definitions.zip', [await packFolder(await fetchDefinitions())], 'application/zip')

/** What defines the tenant, as files: to download, and to compare and push those of a folder. */
export function Definitions() {
  const [folder, setFolder] = useState<DefinitionFolder>()
  const [revision, setRevision] = useState(0)
  const [done, setDone] = useState<DefinitionChange[]>()
  const change = (next: DefinitionFolder | undefined) => {
    setFolder(next)
    setRevision(revision + 1)
  }
  const downloading = useMutation({ mutationFn: download, onError: showProblem })
  const reading = useMutation({
    mutationFn: async (files: Promise<ChosenFile[]>) => readFolder(await files),
    onMutate: () => setDone(undefined),
    onSuccess: change,
  })
  const replacing = useMutation({
    mutationFn: fetchDefinitions,
    onMutate: () => setDone(undefined),
    onSuccess: change,
    onError: showProblem,
  })
  const finish = (changes: DefinitionChange[]) => {
    setDone(changes)
    change(undefined)
  }
  return (
    <Screen
      title="Definitions"
      request={{ method: 'GET', path: '/api/definitions' }}
      actions={
        <>
          <Button
            variant="default"
            leftSection={<IconKey size={14} />}
            loading={replacing.isPending}
            onClick={() => replacing.mutate()}
          >
            Replace secrets
          </Button>
          <Button
            variant="default"
            leftSection={<IconDownload size={14} />}
            loading={downloading.isPending}
            onClick={() => downloading.mutate()}
          >
            Download
          </Button>
        </>
      }
    >
      <div className={classes.screen}>
        {done && (
          <PanelSection title="What was done" order={2}>
            <ChangeList label="Changes that were made" changes={done} isDone />
          </PanelSection>
        )}
        {folder ? (
          <FolderPlan {...{ folder, revision }} onChange={change} onDone={finish} />
        ) : (
          <FolderDrop
            label="Push"
            icon={<IconFileCode size={28} stroke={1.4} aria-hidden />}
            text="Drop a folder of definitions, or a zip of it. You see what would change before anything does."
            accept=".zip"
            onChoose={reading.mutate}
          >
            {reading.error && <ProblemMessage error={reading.error} m={0} />}
          </FolderDrop>
        )}
      </div>
    </Screen>
  )
}

type FolderPlanProps = {
  folder: DefinitionFolder
  /** Differs whenever the folder does, whose texts are too long to be compared. */
  revision: number
  onChange: (folder: DefinitionFolder | undefined) => void
  onDone: (changes: DefinitionChange[]) => void
}

/** What a push of the folder would change, and the push. */
function FolderPlan({ folder, revision, onChange, onDone }: FolderPlanProps) {
  const [prune, setPrune] = useState(false)
  const [pruneData, setPruneData] = useState(false)
  const [secrets, setSecrets] = useState<Record<string, string>>({})
  const [failure, setFailure] = useState<unknown>()
  const { data, error, isFetching } = useQuery({
    queryKey: ['definitions', 'plan', revision, prune],
    queryFn: async () => ({ plan: await fetchPlan(folder, prune), current: await fetchDefinitions() }),
    // Texts may be long: they are forgotten with the screen.
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  const fail = (cause: unknown) => {
    setFailure(cause)
    onChange({ ...folder, versions: mergeVersions(folder.versions, readFailure(cause).versions) })
  }
  const changePrune = (next: boolean) => {
    setFailure(undefined)
    setPrune(next)
  }
  const overwrite = () => {
    setFailure(undefined)
    onChange({ ...folder, versions: {} })
  }
  const problem = error ?? failure
  return (
    <PanelSection
      title="Plan"
      order={2}
      action={
        <Button size="compact-sm" variant="default" onClick={() => onChange(undefined)}>
          Choose others
        </Button>
      }
    >
      <Group my="xs">
        <Checkbox
          label="Remove what has no file"
          checked={prune}
          onChange={(event) => changePrune(event.currentTarget.checked)}
        />
        {prune && (
          <Checkbox
            label="Also remove blueprints that have entities"
            checked={pruneData}
            onChange={(event) => setPruneData(event.currentTarget.checked)}
          />
        )}
      </Group>
      {problem !== undefined && <Refusal error={problem} onOverwrite={overwrite} />}
      {!data && isFetching && <Skeleton height={120} animate={false} />}
      {data && !error && (
        <>
          <ChangeList
            label="Changes"
            changes={data.plan.changes}
            sides={{ before: data.current.files, after: folder.files }}
          />
          {(data.plan.changes.length > 0 || data.plan.keptSecrets.length > 0) && (
            <PushForm
              {...{ folder, prune, pruneData, secrets, onDone }}
              plan={data.plan}
              onSecretsChange={setSecrets}
              onFail={fail}
            />
          )}
        </>
      )}
    </PanelSection>
  )
}
