"""The interface between memories: the stream units that the DMA is made of."""
