import BenchmarkCore

/// R2: a parallel loop over the tiles of a picture.
func mandelbrot(_ pool: some Pool, side: Int) -> Sample {
    let points = Slots(count: side * side)
    let length = Workload.sideOfTile
    let tiles = (side + length - 1) / length
    let start = startClock()
    pool.loop(tiles * tiles) { tile in
        let column = tile % tiles * length
        let row = tile / tiles * length
        for row in row..<min(side, row + length) {
            for column in column..<min(side, column + length) {
                points.address(of: row * side + column).pointee = Mandelbrot.steps(
                    column: column, row: row, of: side)
            }
        }
    }
    let stop = stopClock()
    return Sample(
        from: start, to: stop, operations: side * side,
        checksum: Workload.checksum(ofModel: points.values))
}
