import { Button, CloseButton, Progress } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useObservable } from '../api/observable'
import { useAlterations } from './alterations'
import { describeProgress } from './progress-description'
import classes from './tray.module.css'
import { cancelWork, dismissWork, type Work, works } from './work'

/** The long work of this tab and of the tenant's blueprints, at the bottom of each screen. Without any, it takes no room. */
export function Tray() {
  const own = useObservable(works)
  const all = [...useAlterations(), ...own]
  if (!all.length) return null
  return (
    <section className={classes.tray} aria-label="Long work">
      {all.map((work) => (
        <WorkLine key={work.id} work={work} isOwn={own.includes(work)} />
      ))}
    </section>
  )
}

function WorkLine({ work, isOwn }: { work: Work; isOwn: boolean }) {
  const { id, label, state, done, total, result, path } = work
  const isRunning = state === 'running'
  return (
    <div className={classes.work}>
      <span className={classes.label}>{label}</span>
      <span className={state === 'failed' ? classes.failure : classes.progress} role={isRunning ? undefined : 'status'}>
        {isRunning ? describeProgress(work, Date.now()) : result}
      </span>
      {isRunning && (
        <Progress
          className={classes.bar}
          size="sm"
          value={total ? (done / total) * 100 : 100}
          animated={!total}
          aria-label={label}
        />
      )}
      <span className={classes.actions}>
        {path && (
          <Button component={Link} to={path} variant="subtle" size="compact-xs">
            Show
          </Button>
        )}
        {isOwn && isRunning && (
          <Button variant="subtle" color="gray" size="compact-xs" onClick={() => cancelWork(id)}>
            Cancel
          </Button>
        )}
        {!isRunning && <CloseButton size="sm" aria-label={`Dismiss ${label}`} onClick={() => dismissWork(id)} />}
      </span>
    </div>
  )
}
