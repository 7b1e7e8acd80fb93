import { afterAll, beforeAll } from 'bun:test'
import { areas } from '../src/app'
import { type Area, compose } from '../src/jobs/area'

/** Adds an area to the server for the tests of a file. Returns a function to call when more was put into it later. */
export function useTestArea(area: Omit<Area, 'name'>): () => void {
  const recompose = () => compose([...areas, { name: 'test', ...area }])
  beforeAll(recompose)
  afterAll(() => compose(areas))
  return recompose
}
