import { connection } from '../api/connection'
import { useObservable } from '../api/observable'
import classes from './frame.module.css'

/** Says that the server cannot be reached, until it can. */
export function ConnectionStatus() {
  const state = useObservable(connection)
  return (
    <div role="status">
      {state === 'lost' && (
        <div className={classes.notice}>The server cannot be reached. This page continues as soon as it can.</div>
      )}
    </div>
  )
}
