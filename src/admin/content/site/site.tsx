import { Anchor, Button, Text } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Deployment } from '../../api/schema'
import { confirmAction } from '../../ui/confirmation'
import { formatBytes } from '../../ui/format-bytes'
import { showNotice, showProblem } from '../../ui/notices'
import { PanelSection } from '../../ui/panel-section'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { RowList } from '../../ui/row-list'
import { Screen } from '../../ui/screen'
import { StateTag } from '../../ui/state-tag'
import classes from './site.module.css'
import { SiteDrop } from './site-drop'

const reload = () => queryClient.invalidateQueries({ queryKey: ['site'] })

const bringBack = async ({ _id }: Deployment) => {
  await fetchData(api.POST('/api/sites/rollback', { params: { query: { to: _id } } }))
  showNotice('The deployment is active.')
  await reload()
}

const removeSite = async () => {
  const isConfirmed = await confirmAction({
    title: 'Remove the site?',
    text: 'This also deletes its deployments. They cannot be restored.',
    action: 'Remove the site',
  })
  if (!isConfirmed) return
  await fetchData(api.DELETE('/api/sites'))
  showNotice('The site is removed.')
  await reload()
}

/** The static site of the tenant: where it can be seen, a place to drop another one, and its deployments. */
export function Site() {
  const { data, error } = useQuery({ queryKey: ['site'], queryFn: () => fetchData(api.GET('/api/sites')) })
  const rollback = useMutation({ mutationFn: bringBack, onError: showProblem })
  const removal = useMutation({ mutationFn: removeSite, onError: showProblem })
  const active = data?.find((deployment) => deployment.active)
  return (
    <Screen
      title="Site"
      request={{ method: 'GET', path: '/api/sites' }}
      actions={
        active && (
          <Button
            variant="default"
            leftSection={<IconTrash size={14} />}
            loading={removal.isPending}
            onClick={() => removal.mutate()}
          >
            Remove the site
          </Button>
        )
      }
      toolbar={error && <ProblemMessage error={error} />}
    >
      <div className={classes.screen}>
        {active && <SiteLinks urls={active.urls} />}
        {data && <SiteDrop isSpa={active?.spa ?? false} />}
        <PanelSection title="Deployments" order={2}>
          <RowList
            label="Deployments"
            rows={data}
            rowKey={({ _id }) => _id}
            empty="There are no deployments yet. Everybody sees a site that is deployed here."
            render={(deployment) => ({
              title: <RelativeTime time={deployment.created} />,
              text: describeDeployment(deployment),
              actions: deployment.active ? (
                <StateTag label="Active" tone="good" />
              ) : (
                <Button
                  size="compact-sm"
                  variant="default"
                  loading={rollback.isPending && rollback.variables._id === deployment._id}
                  onClick={() => rollback.mutate(deployment)}
                >
                  Make active
                </Button>
              ),
            })}
          />
        </PanelSection>
      </div>
    </Screen>
  )
}

const describeDeployment = ({ files, bytes, spa }: Deployment) =>
  [
    `${files.toLocaleString()} ${files === 1 ? 'file' : 'files'}`,
    formatBytes(bytes),
    ...(spa ? ['with its own router'] : []),
  ].join(', ')

const SiteLinks = ({ urls }: { urls: readonly string[] }) =>
  urls.length ? (
    <div className={classes.links}>
      {urls.map((url) => (
        <Anchor key={url} href={url} target="_blank" rel="noopener" size="sm">
          {url}
        </Anchor>
      ))}
    </div>
  ) : (
    <Text size="sm">No host leads to this tenant yet, so nobody sees the site. The operator gives it one.</Text>
  )
